// The adapter of a program's servants. With -Dbidirectional=true it has BidirectionalPolicy BOTH, so that a server calls back over the
// connection of its client; the programs need the initializer of JacORB for that.

import org.omg.BiDirPolicy.BIDIRECTIONAL_POLICY_TYPE;
import org.omg.BiDirPolicy.BOTH;
import org.omg.BiDirPolicy.BidirectionalPolicyValueHelper;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.PortableServer.ImplicitActivationPolicyValue;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

final class Adapters {
    private Adapters() {}

    static POA of(ORB orb) throws Exception {
        POA root = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        root.the_POAManager().activate();
        if (!Boolean.getBoolean("bidirectional")) return root;
        Any both = orb.create_any();
        BidirectionalPolicyValueHelper.insert(both, BOTH.value);
        Policy[] policies = {
            root.create_implicit_activation_policy(ImplicitActivationPolicyValue.IMPLICIT_ACTIVATION),
            orb.create_policy(BIDIRECTIONAL_POLICY_TYPE.value, both)
        };
        return root.create_POA("bidirectional", root.the_POAManager(), policies);
    }
}
