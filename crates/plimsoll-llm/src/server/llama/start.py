# Starts llama.cpp's own HTTP server as the Python package xllamacpp holds it.
# Arguments: MODEL HOST PORT SLOTS TOKENS_PER_SLOT THREADS
import signal
import sys

import xllamacpp

model, host, port, slots, tokens, threads = sys.argv[1:7]
settings = xllamacpp.CommonParams()
settings.model.path = model
settings.hostnames = [host]
settings.port = int(port)
settings.n_parallel = int(slots)
settings.n_ctx = int(slots) * int(tokens)
settings.cpuparams.n_threads = int(threads)
settings.cpuparams_batch.n_threads = int(threads)
settings.endpoint_metrics = True
settings.offline = True
settings.ui = False
settings.fit_params = False
server = xllamacpp.Server(settings)
signal.sigwait({signal.SIGINT, signal.SIGTERM})
