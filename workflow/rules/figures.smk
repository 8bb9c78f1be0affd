# Draw one figure of a study from its cube.


rule figure:
    input:
        "results/{study}/cube.nc",
    output:
        png=report(
            "results/{study}/figures/{figure}.png",
            category="{study}",
            labels={"figure": "{figure}"},
        ),
        pdf="results/{study}/figures/{figure}.pdf",
    log:
        "results/{study}/logs/figure_{figure}.log",
    conda:
        ENVIRONMENT
    params:
        stem=lambda wildcards, output: output.png.removesuffix(".png"),
        settings=lambda wildcards: PLAN.figure_digest(wildcards.study, wildcards.figure),
    message:
        "{wildcards.study}: draw {wildcards.figure}"
    shell:
        '"$PYTHON" -m manyserver figure {wildcards.study:q} {wildcards.figure:q}'
        " {input:q} {params.stem:q} > {log:q} 2>&1"
