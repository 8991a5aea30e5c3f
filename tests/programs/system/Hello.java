// Threads, a lambda, a regular expression and a temporary file: compiled and run by suite `system`.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;

public class Hello {
    public static void main(String[] arguments) throws Exception {
        var pool = Executors.newFixedThreadPool(4);
        var square = pool.submit(() -> IntStream.rangeClosed(1, 100).map(n -> n * n).sum());
        Path file = Files.createTempFile("hello", ".txt");
        Files.writeString(file, "sum " + square.get());
        System.out.println(Files.readString(file).replaceAll("[0-9]+$", "is $0"));
        Files.delete(file);
        pool.shutdown();
    }
}
