#!/usr/bin/env bash
# Stop what start.sh started. Usage: stop.sh FOLDER
folder=$1
for file in "$folder/slurmd.pid" "$folder/slurmctld.pid" "$folder/munge/pid"; do
    if [ -f "$file" ]; then kill "$(cat "$file")" 2>/dev/null; fi
done
exit 0
