# Write the tables of a study from its cube, as CSV and LaTeX.


for study in PLAN.names:
    if names := PLAN.table_names(study):

        rule:
            name:
                f"tables_{study}"
            input:
                f"results/{study}/cube.nc",
            output:
                [
                    report(
                        f"results/{study}/tables/{name}.csv",
                        caption="../report/tables.rst",
                        category=study,
                        labels={"table": name},
                    )
                    for name in names
                ],
                [f"results/{study}/tables/{name}.tex" for name in names],
            log:
                f"results/{study}/logs/tables.log",
            conda:
                ENVIRONMENT
            params:
                study=study,
                folder=subpath(output[0], parent=True),
                settings={name: PLAN.table_digest(study, name) for name in names},
            message:
                "{params.study}: write tables"
            shell:
                '"$PYTHON" -m manyserver tables {params.study:q} {input:q} {params.folder:q}'
                " > {log:q} 2>&1"
