package drawdown;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;

import io.delta.storage.HadoopFileSystemLogStore;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The log of Delta tables in an object store, for whatever a user's code commits by Spark:
 * `spark.delta.logStore.s3a.impl`. Delta's own one is safe for one driver only; an entry is put if absent here,
 * as delta-rs does it.
 */
public class ObjectLogStore extends HadoopFileSystemLogStore {
    public ObjectLogStore(Configuration conf) {
        super(conf);
    }

    public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf) throws IOException {
        FileSystem files = path.getFileSystem(conf);
        CreateOnce entry = new CreateOnce(files, path, overwrite.booleanValue());
        try {
            while (actions.hasNext()) {
                entry.write(((String) actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
            }
        } catch (IOException failed) {
            entry.cancel();
            throw failed;
        } catch (RuntimeException failed) {
            entry.cancel();
            throw failed;
        }
        try {
            entry.close();
        } catch (org.apache.hadoop.fs.FileAlreadyExistsException exists) {
            throw new java.nio.file.FileAlreadyExistsException(path.toString());
        }
    }

    public Boolean isPartialWriteVisible(Path path, Configuration conf) {
        return Boolean.FALSE;
    }
}
