#!/usr/bin/env bash
# Print success, failed or running for a job of PBS. Usage: status.sh ID
case "$(qstat -x -f "$1" 2>&1)" in
    *"Exit_status = 0"*) echo success ;;
    *"job_state = "[QRHESTWU]*) echo running ;;
    *) echo failed ;;
esac
