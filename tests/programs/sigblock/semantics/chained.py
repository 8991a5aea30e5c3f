# Python's handlers: those of scripts, SIGINT's own, and faulthandler's upon a fault. The argument says how it ends.
import faulthandler, os, signal, sys, threading, time
order = []
signal.signal(signal.SIGUSR1, lambda number, frame: order.append(number))
previous = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
print(previous == signal.SIG_DFL, signal.getsignal(signal.SIGUSR1) is not None)
for _ in range(5):
    os.kill(os.getpid(), signal.SIGUSR1)
signal.raise_signal(signal.SIGUSR2)
threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
end = time.time() + 10
while len(order) < 6 and time.time() < end:
    time.sleep(0.001)
print(order)
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    print("interrupted")
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
count = 0
def tick(number, frame):
    global count
    count += 1
signal.signal(signal.SIGALRM, tick)
import ctypes, json, sqlite3, xml.dom.minidom
while count < 20:
    pass
signal.setitimer(signal.ITIMER_REAL, 0)
print("ticks")
print(signal.sigtimedwait([signal.SIGWINCH], 0), len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
sys.stdout.flush()
if sys.argv[1] == "fault":
    faulthandler.enable(all_threads=False)
    ctypes.string_at(16)
elif sys.argv[1] == "abort":
    faulthandler.enable(all_threads=False)
    os.abort()
elif sys.argv[1] == "interrupt":
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
