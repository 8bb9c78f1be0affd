# Put all units of a study side by side in one NetCDF file.


rule cube:
    input:
        lambda wildcards: expand(
            "results/{file}", file=PLAN.unit_files(wildcards.study)
        ),
    output:
        "results/{study}/cube.nc",
    log:
        "results/{study}/logs/cube.log",
    conda:
        ENVIRONMENT
    params:
        settings=lambda wildcards: PLAN.cube_digest(wildcards.study),
    message:
        "{wildcards.study}: assemble the cube"
    shell:
        '"$PYTHON" -m manyserver cube {wildcards.study:q} {output:q} {input:q}'
        " > {log:q} 2>&1"
