package drawdown;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Spark's checkpoint in an object store: `spark.sql.streaming.checkpointFileManagerClass`.
 *
 * Spark's own manager renames a temporary file, which there is a copy and a delete, so that two drivers could
 * both commit a batch. Here a file is one put; one that must not replace another (offsets, commits) is put if
 * absent. Folders are not made, since a prefix needs none; a missing one is empty.
 */
public class ObjectCheckpoints extends FileSystemBasedCheckpointFileManager {
    private final Path folder;

    public ObjectCheckpoints(Path path, Configuration conf) throws IOException {
        super(path, conf);
        this.folder = path;
    }

    public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean replaces) {
        try {
            return new Cancellable(new CreateOnce(fs(), path, replaces));
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    public FileStatus[] list(Path path, PathFilter filter) {
        try {
            return fs().listStatus(path, filter);
        } catch (FileNotFoundException missing) {
            return new FileStatus[0];
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    public void mkdirs(Path path) {
    }

    public Path createCheckpointDirectory() {
        return fs().makeQualified(folder);
    }

    private static class Cancellable extends CheckpointFileManager.CancellableFSDataOutputStream {
        private final CreateOnce object;

        Cancellable(CreateOnce object) {
            super(object);
            this.object = object;
        }

        public void cancel() {
            object.cancel();
        }
    }
}
