# Compute the points of one unit that the store in results/points does not have.


rule unit:
    output:
        "results/{study}/units/{unit}.jsonl",
    log:
        "results/{study}/logs/{unit}.log",
    benchmark:
        "results/{study}/benchmarks/{unit}.tsv"
    conda:
        ENVIRONMENT
    threads: THREADS
    resources:
        runtime=lambda wildcards, threads, attempt: job_minutes(
            PLAN.study(wildcards.study).unit(wildcards.unit), STORE, threads, attempt
        ),
        mem_mb=lambda wildcards, threads, attempt: job_memory(
            PLAN.study(wildcards.study).units[wildcards.unit], threads, attempt
        ),
    params:
        points=lambda wildcards: PLAN.study(wildcards.study)
        .unit(wildcards.unit)
        .summary,
        code=lambda wildcards: PLAN.study(wildcards.study).unit(wildcards.unit).code,
    message:
        "{wildcards.study}: compute {params.points} of {wildcards.unit}"
    shell:
        '"$PYTHON" -m manyserver unit {wildcards.study:q} {wildcards.unit:q}'
        " {output:q} --threads {threads} --log {log:q}"
