// An Exchange::Desk that echoes text, and has no other operations.
//
// java TextServer FILE: FILE is written when the server is ready. It ends by a signal.

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.omg.CORBA.BAD_OPERATION;
import org.omg.CORBA.ORB;
import org.omg.CORBA.portable.InputStream;
import org.omg.CORBA.portable.InvokeHandler;
import org.omg.CORBA.portable.OutputStream;
import org.omg.CORBA.portable.ResponseHandler;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;
import org.omg.PortableServer.Servant;

public final class TextServer extends Servant implements InvokeHandler {
    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, System.getProperties());
        POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        poa.the_POAManager().activate();
        String reference = orb.object_to_string(poa.servant_to_reference(new TextServer()));
        Path draft = Path.of(arguments[0] + ".draft");
        Files.writeString(draft, reference + "\n");
        Files.move(draft, Path.of(arguments[0]), StandardCopyOption.ATOMIC_MOVE);
        orb.run();
    }

    @Override
    public String[] _all_interfaces(POA poa, byte[] id) {
        return new String[] {"IDL:Exchange/Desk:1.0", "IDL:Exchange/Party:1.0"};
    }

    @Override
    public OutputStream _invoke(String operation, InputStream in, ResponseHandler handler) {
        switch (operation) {
            case "echo_string": {
                String text = in.read_string();
                OutputStream out = handler.createReply();
                out.write_string(text);
                return out;
            }
            case "echo_wstring": {
                String text = in.read_wstring();
                OutputStream out = handler.createReply();
                out.write_wstring(text);
                return out;
            }
            case "echo_texts": {
                String[] texts = Person.texts(in);
                OutputStream out = handler.createReply();
                Person.texts(out, texts);
                return out;
            }
            case "echo_person": {
                Person who = Person.read(in);
                OutputStream out = handler.createReply();
                who.write(out);
                return out;
            }
            default:
                throw new BAD_OPERATION(operation);
        }
    }
}
