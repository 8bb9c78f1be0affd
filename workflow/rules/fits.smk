# Fit rates to a study's cube.


rule fits:
    input:
        "results/{study}/cube.nc",
    output:
        report(
            "results/{study}/fits.csv",
            caption="../report/fits.rst",
            category="{study}",
            labels={"table": "fits"},
        ),
    log:
        "results/{study}/logs/fits.log",
    conda:
        ENVIRONMENT
    params:
        settings=lambda wildcards: PLAN.fits_digest(wildcards.study),
    message:
        "{wildcards.study}: fit rates"
    shell:
        '"$PYTHON" -m manyserver fits {wildcards.study:q} {input:q} {output:q}'
        " > {log:q} 2>&1"
