package drawdown;

import java.io.IOException;
import java.nio.file.Files;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local files; Java does what Hadoop without its native library starts `chmod` and `readlink` for. */
public class RawLocalFiles extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
        Files.setAttribute(pathToFile(path).toPath(), "unix:mode", Integer.valueOf(permission.toShort()));
    }

    /** Asked four times for each file of a checkpoint, whose renaming must not follow a link. */
    public FileStatus getFileLinkStatus(Path path) throws IOException {
        boolean link = Files.isSymbolicLink(pathToFile(path).toPath());
        return link ? super.getFileLinkStatus(path) : getFileStatus(path);
    }
}
