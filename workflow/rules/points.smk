# Compute the points of one unit that the store in results/points does not have. Every method has a
# rule of its own, with the threads, memory and time that it declares.


for method in METHODS:

    rule:
        name:
            method
        output:
            "results/{study}/units/{method}/{unit}.jsonl",
        log:
            "results/{study}/logs/{method}/{unit}.log",
        benchmark:
            "results/{study}/benchmarks/{method}/{unit}.tsv"
        wildcard_constraints:
            method=method,
        conda:
            ENVIRONMENT
        threads: PLAN.threads(method, CORES)
        resources:
            runtime=lambda wildcards, threads, attempt: job_minutes(
                PLAN.unit(*wildcards), STORE, threads, attempt
            ),
            mem_mb=lambda wildcards, threads, attempt: job_memory(
                PLAN.unit(*wildcards), threads, attempt
            ),
        params:
            points=lambda wildcards: PLAN.unit(*wildcards).summary,
            code=lambda wildcards: PLAN.unit(*wildcards).code,
        message:
            "{wildcards.study}: compute {params.points} of {wildcards.method}/{wildcards.unit}"
        shell:
            '"$PYTHON" -m manyserver unit {wildcards.study:q} {wildcards.method:q}/{wildcards.unit:q}'
            " {output:q} --threads {threads} --log {log:q}"
