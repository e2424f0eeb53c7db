package drawdown;

import org.apache.hadoop.fs.LocalFileSystem;

/** With checksums beside them, as `fs.file.impl`. */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawLocalFiles());
    }
}
