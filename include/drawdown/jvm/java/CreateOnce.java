package drawdown;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.UUID;

import org.apache.hadoop.fs.Abortable;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * An object that becomes visible when it is closed, and only if its key does not exist then.
 *
 * The server decides (If-None-Match; Google: a generation of 0), so of several writers one succeeds; the others get a
 * FileAlreadyExistsException. A put whose answer was lost is sent again and meets its own object: the
 * writer's mark on it tells that from another writer's.
 */
public class CreateOnce extends OutputStream {
    private static final String IF_ABSENT = "fs.option.create.conditional.overwrite";
    private static final String MARK = "drawdown-writer";

    private final FileSystem files;
    private final Path path;
    private final boolean replaces;
    private final String mark = UUID.randomUUID().toString();
    private final FSDataOutputStream stream;
    private boolean ended = false;

    /** With `replaces` the object takes the place of another one, still as a whole. */
    public CreateOnce(FileSystem files, Path path, boolean replaces) throws IOException {
        this.files = files;
        this.path = path;
        this.replaces = replaces;
        FSDataOutputStreamBuilder builder = files.createFile(path).recursive().overwrite(replaces);
        if (!replaces) {
            builder.opt(IF_ABSENT, "true");
        }
        builder.opt("fs.s3a.create.header." + MARK, mark);
        this.stream = (FSDataOutputStream) builder.build();
    }

    public void write(int value) throws IOException {
        stream.write(value);
    }

    public void write(byte[] content, int start, int length) throws IOException {
        stream.write(content, start, length);
    }

    public void flush() throws IOException {
        stream.flush();
    }

    /** Show the object. */
    public void close() throws IOException {
        if (ended) {
            return;
        }
        ended = true;
        try {
            stream.close();
        } catch (IOException failed) {
            if (replaces || !isConflict(failed)) {
                throw failed;
            }
            if (!isOurs()) {
                throw new FileAlreadyExistsException(path + " was written by another writer");
            }
        }
    }

    /** End without showing anything. */
    public void cancel() {
        if (ended) {
            return;
        }
        ended = true;
        // Google's client has nothing to abort: an upload that is not ended never shows.
        if (stream.getWrappedStream() instanceof Abortable) {
            ((Abortable) stream.getWrappedStream()).abort();
        }
    }

    private boolean isConflict(IOException failed) {
        if (files.getScheme().equals("gs")) {
            return GoogleFiles.isConflict(failed);
        }
        String name = failed.getClass().getSimpleName();
        return name.equals("RemoteFileChangedException") || failed instanceof FileAlreadyExistsException;
    }

    private boolean isOurs() throws IOException {
        if (files.getScheme().equals("gs")) {
            // Google's uploads have ids: one that is sent again is known to the server as the same.
            return false;
        }
        byte[] found = files.getXAttr(path, "header." + MARK);
        return found != null && mark.equals(new String(found, StandardCharsets.UTF_8));
    }
}
