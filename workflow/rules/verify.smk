# Fail, once all else is built, if points of a study failed and that is not allowed.


rule verify:
    input:
        units=lambda wildcards: expand(
            "results/{file}", file=PLAN.unit_files(wildcards.study)
        ),
        products=lambda wildcards: expand(
            "results/{file}", file=PLAN.products(wildcards.study)
        ),
    output:
        "results/{study}/verified.txt",
    log:
        "results/{study}/logs/verify.log",
    conda:
        ENVIRONMENT
    params:
        accept=lambda wildcards: (
            ["--allow-failures"] if PLAN.allow_failures(wildcards.study) else []
        ),
    message:
        "{wildcards.study}: look for failed points"
    shell:
        '"$PYTHON" -m manyserver verify {params.accept:q} {wildcards.study:q}'
        " {output:q} {input.units:q} > {log:q} 2>&1"
