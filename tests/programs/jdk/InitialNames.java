// Finds a naming service as Java programs do, with a host and a port, and uses it.
//
// java InitialNames -ORBInitialHost HOST -ORBInitialPort PORT. One line a check; status 1 if one is wrong.

import java.util.Arrays;
import org.omg.CORBA.ORB;
import org.omg.CORBA.ORBPackage.InvalidName;
import org.omg.CosNaming.NameComponent;
import org.omg.CosNaming.NamingContextExt;
import org.omg.CosNaming.NamingContextExtHelper;

public final class InitialNames {
    private static int wrong = 0;

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, System.getProperties());
        check(Arrays.asList(orb.list_initial_services()).contains("NameService"), "list");
        NamingContextExt root = NamingContextExtHelper.narrow(orb.resolve_initial_references("NameService"));
        check(root != null, "get");
        NameComponent[] name = root.to_name("plant/valve.device");
        root.bind_new_context(Arrays.copyOf(name, 1));
        root.bind(name, root);
        check(root.resolve_str("plant/valve.device")._is_equivalent(root), "bind and resolve");
        try {
            orb.resolve_initial_references("NoSuchService");
            check(false, "an unknown name");
        } catch (InvalidName expected) {
            check(true, "an unknown name");
        }
        orb.shutdown(true);
        System.exit(wrong == 0 ? 0 : 1);
    }

    private static void check(boolean right, String what) {
        System.out.println((right ? "ok " : "WRONG ") + what);
        if (!right) wrong++;
    }
}
