"""Somebody who types a line every 50 ms at the far end of a command, and reads what it shows.

python3 echo.py OVER COMMAND...    ends when there is a file OVER, with an error if a line comes back wrong
"""

import os
import subprocess
import sys
import time

PAUSE_S = 0.05


def main(over, *command):
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        n = 0
        while not os.path.exists(over):
            line = f"{n}\n".encode()
            shell.stdin.write(line)
            shell.stdin.flush()
            if (shown := shell.stdout.readline()) != line:
                sys.exit(f"line {n}: {shown!r}")
            n += 1
            time.sleep(PAUSE_S)
        shell.stdin.close()
    sys.exit(shell.returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
