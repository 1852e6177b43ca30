"""Linear algebra on one thread, so that sums are the same whatever the machine's number of cores."""

from threading import Event, Lock, Thread, local

from threadpoolctl import threadpool_limits


class OneThread:
    """Limits linear algebra to one thread as long as anyone is inside: fits in parallel threads may overlap.

    A limit is lifted by the thread that set it: threadpoolctl does nothing if another one asks. So a thread of its own
    holds it until the last one is outside. Limits of OpenMP are each thread's own and set there too.
    """

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.limited, self.left = Event(), Event()
        self.holder: Thread | None = None
        self.own = local()

    def _hold(self) -> None:
        with threadpool_limits(1):
            self.limited.set()
            self.left.wait()

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limited, self.left = Event(), Event()
                self.holder = Thread(target=self._hold, daemon=True)
                self.holder.start()
                try:
                    self.limited.wait()
                except BaseException:  # an interrupt here must not leave the limit behind
                    self.left.set()
                    raise
            self.inside += 1
        self.own.limit = threadpool_limits(1)

    def __exit__(self, *exc: object) -> None:
        self.own.limit.restore_original_limits()
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.holder is not None:
                self.left.set()
                self.holder.join()


ONE_THREAD = OneThread()
