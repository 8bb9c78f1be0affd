# The same workflow as workflow/Snakefile, for `snakemake` called in this folder.
include: "workflow/Snakefile"


# An included rule is never the default target, so the default is named here.
rule default:
    default_target: True
    input:
        rules.all.input,
    message:
        "all studies are built"
