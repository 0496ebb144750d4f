// An Exchange::Desk served by JacORB, which writes big-endian.
//
// java DeskServer FILE: FILE is written when the server is ready. It ends by a signal.

import Exchange.Desk;
import Exchange.DeskPOA;
import Exchange.Empty;
import Exchange.Party;
import Exchange.Person;
import Exchange.Refused;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.concurrent.atomic.AtomicInteger;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.NO_PERMISSION;
import org.omg.CORBA.ORB;
import org.omg.CORBA.StringHolder;
import org.omg.PortableServer.POA;

public final class DeskServer extends DeskPOA {
    private volatile int level = 0;
    private final AtomicInteger noted = new AtomicInteger();

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, System.getProperties());
        POA poa = Adapters.of(orb);
        String reference = orb.object_to_string(poa.servant_to_reference(new DeskServer()));
        Path draft = Path.of(arguments[0] + ".draft");
        Files.writeString(draft, reference + "\n");
        Files.move(draft, Path.of(arguments[0]), StandardCopyOption.ATOMIC_MOVE);
        orb.run();
    }

    public String name() {
        return "JacORB";
    }

    public int level() {
        return level;
    }

    public void level(int value) {
        level = value;
    }

    public String echo_string(String text) {
        return text;
    }

    public String echo_wstring(String text) {
        return text;
    }

    public String[] echo_texts(String[] lines) {
        return lines;
    }

    public Person echo_person(Person who) {
        return who;
    }

    public int mixed(int given, IntHolder both, StringHolder text) {
        int product = given * both.value;
        both.value += given;
        text.value = "given=" + given;
        return product;
    }

    public void refuse(int code, String reason) throws Refused, Empty {
        if (code == -1) throw new Empty();
        if (code != 0) throw new Refused(reason, code);
    }

    public void fail(int minorCode) {
        throw new NO_PERMISSION(minorCode, CompletionStatus.COMPLETED_MAYBE);
    }

    public org.omg.CORBA.Object echo_object(org.omg.CORBA.Object anyObject) {
        return anyObject;
    }

    public Desk echo_desk(Desk other) {
        return other;
    }

    public int level_of(Party other) {
        return other.level() + 1;
    }

    public void note(int n) {
        noted.incrementAndGet();
    }

    public int noted() {
        return noted.get();
    }

    public void sleep(int milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
