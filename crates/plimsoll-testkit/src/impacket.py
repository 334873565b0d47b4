# impacket's SMB server with one directory as share, for guests. Says its port, and ends with its
# standard input.
import os
import sys
import threading

from impacket.smbserver import SimpleSMBServer

server = SimpleSMBServer(listenAddress="127.0.0.1", listenPort=0)
server.addShare("SHARE", sys.argv[1])
server.setSMB2Support(True)
server.setSMBChallenge("")
# Old versions have no call for it.
print(server._SimpleSMBServer__server.server_address[1], flush=True)


def end_with_stdin():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=end_with_stdin, daemon=True).start()
server.start()
