// A Cubit served by JacORB, which writes big-endian.
//
// java CubitServer FILE: FILE is written when the server is ready. It ends on `shutdown` or by a signal.

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.omg.CORBA.Any;
import org.omg.CORBA.BAD_PARAM;
import org.omg.CORBA.ORB;
import org.omg.CORBA.TCKind;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

public final class CubitServer extends CubitPOA {
    private final ORB orb;

    private CubitServer(ORB orb) {
        this.orb = orb;
    }

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, System.getProperties());
        POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
        poa.the_POAManager().activate();
        String reference = orb.object_to_string(poa.servant_to_reference(new CubitServer(orb)));
        Path file = Path.of(arguments[0]);
        Path draft = Path.of(arguments[0] + ".draft");
        Files.writeString(draft, reference + "\n");
        Files.move(draft, file, StandardCopyOption.ATOMIC_MOVE);
        orb.run();
    }

    public void cube_oneway() {}

    public void cube_void() {}

    public byte cube_octet(byte o) {
        return Cubes.cube(o);
    }

    public short cube_short(short s) {
        return Cubes.cube(s);
    }

    public int cube_long(int l) {
        return Cubes.cube(l);
    }

    public Many cube_struct(Many values) {
        return Cubes.cube(values);
    }

    public oneof cube_union(oneof values) {
        oneof result = new oneof();
        switch (values.discriminator().value()) {
            case discrim._e_0th -> result.o(Cubes.cube(values.o()));
            case discrim._e_1st -> result.s(Cubes.cube(values.s()));
            case discrim._e_2nd -> result.l(Cubes.cube(values.l()));
            default -> result.cm(Cubes.cube(values.cm()));
        }
        return result;
    }

    public Any cube_any(Any values) {
        Any result = orb.create_any();
        switch (values.type().kind().value()) {
            case TCKind._tk_octet -> result.insert_octet(Cubes.cube(values.extract_octet()));
            case TCKind._tk_short -> result.insert_short(Cubes.cube(values.extract_short()));
            case TCKind._tk_long -> result.insert_long(Cubes.cube(values.extract_long()));
            case TCKind._tk_struct -> ManyHelper.insert(result, Cubes.cube(ManyHelper.extract(values)));
            default -> throw new BAD_PARAM();
        }
        return result;
    }

    public void cube_long_sequence(int[] input, long_seqHolder output) {
        output.value = new int[input.length];
        for (int i = 0; i < input.length; i++) output.value[i] = Cubes.cube(input[i]);
    }

    public void cube_octet_sequence(byte[] input, octet_seqHolder output) {
        output.value = new byte[input.length];
        for (int i = 0; i < input.length; i++) output.value[i] = Cubes.cube(input[i]);
    }

    public void cube_many_sequence(Many[] input, many_seqHolder output) {
        output.value = new Many[input.length];
        for (int i = 0; i < input.length; i++) output.value[i] = Cubes.cube(input[i]);
    }

    public void shutdown() {
        new Thread(() -> orb.shutdown(true)).start();
    }
}
