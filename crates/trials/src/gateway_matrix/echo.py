"""Somebody who types a line every 50 ms at the far end of a command, and reads what it shows.

python3 echo.py SECONDS COMMAND...    ends after that time, with an error if a line comes back wrong
"""

import subprocess
import sys
import time

PAUSE_S = 0.05


def main(seconds, *command):
    end = time.monotonic() + float(seconds)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        n = 0
        while time.monotonic() < end:
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
