// A Matrix::Echo served by an ORB for Java.
//
// java MatrixServer FILE: FILE is written when the server is ready. It ends by a signal. The operations are those of the interface that the
// IDL compiler made, so there is no line for a type here.

import Matrix.EchoOperations;
import Matrix.EchoPOATie;
import Matrix.Pixel;
import Matrix.Trouble;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.omg.CORBA.ORB;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

public final class MatrixServer {
    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, System.getProperties());
        POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        poa.the_POAManager().activate();
        InvocationHandler echo = (proxy, operation, values) -> {
            if (operation.getName().equals("a_user_exception")) {
                throw new Trouble((String) values[0], (Integer) values[1], (Pixel) values[2]);
            }
            var value = values[1].getClass().getField("value");
            values[2].getClass().getField("value").set(values[2], value.get(values[1]));
            value.set(values[1], values[0]);
            return values[0];
        };
        Class<?>[] operations = {EchoOperations.class};
        var servant = (EchoOperations) Proxy.newProxyInstance(MatrixServer.class.getClassLoader(), operations, echo);
        String reference = orb.object_to_string(poa.servant_to_reference(new EchoPOATie(servant)));
        Path draft = Path.of(arguments[0] + ".draft");
        Files.writeString(draft, reference + "\n");
        Files.move(draft, Path.of(arguments[0]), StandardCopyOption.ATOMIC_MOVE);
        orb.run();
    }
}
