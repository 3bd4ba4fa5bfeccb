import java.io.InputStream;
import java.net.URL;

/** Prints what is at a URL. */
class Get {
    public static void main(String[] args) throws Exception {
        try (InputStream in = new URL(args[0]).openStream()) {
            in.transferTo(System.out);
        }
    }
}
