# Draw the figures of a study from its cube, in one process: importing takes longer than drawing.
# The command leaves alone those that are there as they would be drawn, for which `update` keeps
# them. A rule has a fixed number of outputs, so each study has a rule of its own.


for study in PLAN.names:
    if titles := PLAN.figure_titles(study):

        rule:
            name:
                f"figures_{study}"
            input:
                f"results/{study}/cube.nc",
            output:
                [
                    update(
                        report(
                            f"results/{study}/figures/{title}.png",
                            caption="../report/figures.rst",
                            category=study,
                            labels={"figure": title},
                        )
                    )
                    for title in titles
                ],
                [update(f"results/{study}/figures/{title}.pdf") for title in titles],
            log:
                f"results/{study}/logs/figures.log",
            conda:
                ENVIRONMENT
            params:
                study=study,
                folder=subpath(output[0], parent=True),
                settings={title: PLAN.figure_digest(study, title) for title in titles},
            message:
                "{params.study}: draw figures"
            shell:
                '"$PYTHON" -m manyserver figures {params.study:q} {input:q} {params.folder:q}'
                " > {log:q} 2>&1"
