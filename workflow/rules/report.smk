# One page of HTML with the claims and all studies that are built.


rule html:
    input:
        "results/claims.csv",
        expand(
            "results/{file}",
            file=[file for study in PLAN.names for file in PLAN.products(study)],
        ),
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    conda:
        ENVIRONMENT
    params:
        settings=report_digest(),
    message:
        "write the report"
    shell:
        '"$PYTHON" -m manyserver report > {log:q} 2>&1'
