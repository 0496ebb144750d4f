// Cubes in wrapping arithmetic of the argument's own type, as cubit.idl demands.

final class Cubes {
    private Cubes() {}

    static byte cube(byte o) {
        return (byte) (o * o * o);
    }

    static short cube(short s) {
        return (short) (s * s * s);
    }

    static int cube(int l) {
        return l * l * l;
    }

    static Many cube(Many m) {
        return new Many(cube(m.o), cube(m.l), cube(m.s));
    }

    static boolean same(Many a, Many b) {
        return a.o == b.o && a.l == b.l && a.s == b.s;
    }
}
