# Decide the statements of the papers by all studies that are built. Those of this run are its
# inputs; what earlier runs have built is read, too.


rule claims:
    input:
        expand("results/{file}", file=PLAN.data()),
    output:
        report(
            "results/claims.csv",
            caption="../report/claims.rst",
            category="claims",
            labels={"table": "claims"},
        ),
        "results/claims.md",
    log:
        "results/logs/claims.log",
    conda:
        ENVIRONMENT
    params:
        settings=CLAIMS,
    message:
        "decide claims"
    shell:
        '"$PYTHON" -m manyserver claims > {log:q} 2>&1'
