// Java's handlers: null pointers and deep recursions that are found by faults, safepoints, a signal of its own and
// one that is raised.
public class Chained {
    private int value = 5;
    private static int deep(int depth) {
        return deep(depth + 1) + 1;
    }
    private static int read(Chained object) {
        return object.value;
    }
    public static void main(String[] arguments) throws Exception {
        int sum = 0, caught = 0;
        Chained object = new Chained();
        // Often, so that it is compiled: then a null pointer is found by its fault.
        for (int i = 0; i < 200000; i++) {
            try {
                sum += read(i % 1000 == 999 ? null : object);
            } catch (NullPointerException exception) {
                caught++;
            }
        }
        System.out.println("sum " + sum + " null pointers " + caught);
        for (int i = 0; i < 3; i++) {
            try {
                deep(0);
            } catch (StackOverflowError error) {
                System.out.println("deep");
            }
        }
        Object lock = new Object();
        boolean[] done = {false};
        sun.misc.Signal.handle(new sun.misc.Signal("USR2"), signal -> {
            synchronized (lock) {
                done[0] = true;
                lock.notify();
            }
        });
        sun.misc.Signal.raise(new sun.misc.Signal("USR2"));
        synchronized (lock) {
            while (!done[0]) lock.wait(10000);
        }
        System.out.println("signal " + done[0]);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        sun.misc.Signal.raise(new sun.misc.Signal("TERM"));
        Thread.sleep(20000);
    }
}
