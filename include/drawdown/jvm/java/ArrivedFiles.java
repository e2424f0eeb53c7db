package drawdown;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * What a bucket has reported as new in a source's folder, as the listing of that folder: for BucketFiles.
 *
 * Sources are known by a name that a setting of their query's session holds. Each has its folder in the first line
 * and a file in every further one: bytes, time, path.
 */
public class ArrivedFiles {
    private static final Map TEXTS = new ConcurrentHashMap();
    private static final long BLOCK = 32L << 20;

    public static void put(String name, String text) {
        TEXTS.put(name, text);
    }

    public static String get(String name) {
        return (String) TEXTS.get(name);
    }

    /**
     * Return the files below a folder, of a source whose folder it is or is in; null for any other.
     *
     * Unless it goes to the bottom, folders stand for the files in them.
     */
    static List below(String name, Path path, boolean toTheBottom) {
        String text = get(name);
        if (text == null) {
            return null;
        }
        String[] lines = text.split("\n");
        String folder = path.toString() + "/";
        if (!folder.startsWith(lines[0] + "/")) {
            return null;
        }
        Map found = new LinkedHashMap();
        for (int i = 1; i < lines.length; i++) {
            String[] parts = lines[i].split(" ", 3);
            if (parts.length == 3 && parts[2].startsWith(folder)) {
                int end = toTheBottom ? -1 : parts[2].indexOf('/', folder.length());
                add(found, parts, end);
            }
        }
        return new ArrayList(found.values());
    }

    private static void add(Map found, String[] parts, int end) {
        if (end < 0) {
            long size = Long.parseLong(parts[0]);
            long time = Long.parseLong(parts[1]);
            found.put(parts[2], new FileStatus(size, false, 1, BLOCK, time, new Path(parts[2])));
        } else {
            String below = parts[2].substring(0, end);
            found.put(below, new FileStatus(0L, true, 1, BLOCK, 0L, new Path(below)));
        }
    }
}
