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
        "../../environment.yml"
    params:
        accept=lambda wildcards: (
            "--allow-failures" if PLAN.allow_failures(wildcards.study) else ""
        ),
    message:
        "{wildcards.study}: look for failed points"
    shell:
        "python -m manyserver verify {params.accept} {wildcards.study} {output} {input.units}"
        " > {log} 2>&1"
