#!/usr/bin/env python3
"""Opens sessions and keeps them, sending nothing, until it is ended.

idle.py PORT SESSIONS
"""

import signal
import socket
import sys

port, count = map(int, sys.argv[1:])
sessions = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
signal.pause()
