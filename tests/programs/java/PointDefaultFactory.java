// Makes a Matrix::Point to read into.

package Matrix;

import java.io.Serializable;
import org.omg.CORBA_2_3.portable.InputStream;

public final class PointDefaultFactory implements org.omg.CORBA.portable.ValueFactory {
    @Override
    public Serializable read_value(InputStream in) {
        return in.read_value(new Point() {});
    }
}
