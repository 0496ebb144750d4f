// Calls every operation of a Cubit through JacORB, which writes big-endian, and checks every answer.
//
// java CubitClient REF [N,N...]: REF is a file or a reference, N the lengths of the sequences (0,1,4,1021,4096).
// One line a check; status 1 if one is wrong.

import java.nio.file.Files;
import java.nio.file.Path;
import org.omg.CORBA.ORB;

public final class CubitClient {
    private static int wrong = 0;

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, System.getProperties());
        Path file = Path.of(arguments[0]);
        String reference = Files.isRegularFile(file) ? Files.readString(file).trim() : arguments[0];
        String lengths = arguments.length > 1 ? arguments[1] : "0,1,4,1021,4096";
        Cubit cubit = CubitHelper.narrow(orb.string_to_object(reference));
        check(cubit != null, "narrow to Cubit");
        check(!cubit._non_existent(), "_non_existent is false");
        cubit.cube_void();
        check(true, "cube_void");
        cubit.cube_oneway();
        check(true, "cube_oneway");
        numbers(cubit);
        composed(cubit);
        for (String length : lengths.split(",")) sequences(cubit, Integer.parseInt(length));
        orb.shutdown(true);
        System.exit(wrong == 0 ? 0 : 1);
    }

    private static void numbers(Cubit cubit) {
        for (int value : new int[] {0, 1, 2, 7, 100, Integer.MIN_VALUE, Integer.MAX_VALUE, -3, 255, 32767, -32768}) {
            check(cubit.cube_octet((byte) value) == Cubes.cube((byte) value), "cube_octet(" + (byte) value + ")");
            check(cubit.cube_short((short) value) == Cubes.cube((short) value), "cube_short(" + (short) value + ")");
            check(cubit.cube_long(value) == Cubes.cube(value), "cube_long(" + value + ")");
        }
    }

    private static void composed(Cubit cubit) {
        Many many = new Many((byte) 255, Integer.MIN_VALUE + 5, (short) -7);
        check(Cubes.same(cubit.cube_struct(many), Cubes.cube(many)), "cube_struct");
        oneof value = new oneof();
        value.o((byte) 9);
        check(cubit.cube_union(value).o() == Cubes.cube((byte) 9), "cube_union of an octet");
        value.s((short) -9);
        check(cubit.cube_union(value).s() == -729, "cube_union of a short");
        value.l(3);
        check(cubit.cube_union(value).l() == 27, "cube_union of a long");
        value.cm(many);
        check(Cubes.same(cubit.cube_union(value).cm(), Cubes.cube(many)), "cube_union of a struct");
    }

    private static void sequences(Cubit cubit, int length) {
        int[] longs = new int[length];
        byte[] octets = new byte[length];
        Many[] manys = new Many[length];
        for (int i = 0; i < length; i++) {
            int mixed = i * 0x9e3779b1;
            longs[i] = mixed;
            octets[i] = (byte) (mixed >> 24);
            manys[i] = new Many((byte) i, mixed, (short) (mixed >> 16));
        }
        long_seqHolder longsOut = new long_seqHolder();
        octet_seqHolder octetsOut = new octet_seqHolder();
        many_seqHolder manysOut = new many_seqHolder();
        cubit.cube_long_sequence(longs, longsOut);
        cubit.cube_octet_sequence(octets, octetsOut);
        cubit.cube_many_sequence(manys, manysOut);
        boolean right = longsOut.value.length == length && octetsOut.value.length == length && manysOut.value.length == length;
        for (int i = 0; right && i < length; i++) {
            right = longsOut.value[i] == Cubes.cube(longs[i])
                && octetsOut.value[i] == Cubes.cube(octets[i])
                && Cubes.same(manysOut.value[i], Cubes.cube(manys[i]));
        }
        check(right, "sequences of " + length);
    }

    private static void check(boolean right, String what) {
        System.out.println((right ? "ok " : "WRONG ") + what);
        if (!right) wrong++;
    }
}
