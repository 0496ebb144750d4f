// Has an Exchange::Desk echo text of every kind. The JDK has no IDL compiler any more, so this writes what a stub would.
//
// java TextClient REFERENCE. One line a check; status 1 if one is wrong. By a URL it sends narrow text only: the JDK's ORB refuses to
// send wide text by a reference that names no code sets.

import org.omg.CORBA.ORB;
import org.omg.CORBA.portable.InputStream;
import org.omg.CORBA.portable.ObjectImpl;
import org.omg.CORBA.portable.OutputStream;

public final class TextClient {
    private static int wrong = 0;

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, System.getProperties());
        ObjectImpl desk = (ObjectImpl) orb.string_to_object(arguments[0]);
        for (String text : new String[] {"", "plain", "caf\u00e9 \u00e5ngstr\u00f6m \u00ff"}) {
            OutputStream request = desk._request("echo_string", true);
            request.write_string(text);
            InputStream reply = desk._invoke(request);
            check(reply.read_string().equals(text), "echo_string");
            desk._releaseReply(reply);
        }
        if (!arguments[0].startsWith("corbaloc:")) wide(desk);
        orb.shutdown(true);
        System.exit(wrong == 0 ? 0 : 1);
    }

    private static void wide(ObjectImpl desk) throws Exception {
        for (String text : new String[] {"", "plain", "\u03b1\u03b2\u03b3", "\u65e5\u672c", "\ud83e\udd80"}) {
            OutputStream request = desk._request("echo_wstring", true);
            request.write_wstring(text);
            InputStream reply = desk._invoke(request);
            check(reply.read_wstring().equals(text), "echo_wstring");
            desk._releaseReply(reply);
        }
        OutputStream request = desk._request("echo_person", true);
        new Person("Grace \u00e9", "\u0394", 'G', '\u2713').write(request);
        InputStream reply = desk._invoke(request);
        Person back = Person.read(reply);
        desk._releaseReply(reply);
        check(back.name().equals("Grace \u00e9") && back.nickname().equals("\u0394"), "name and nickname");
        check(back.initial() == 'G', "char");
        check(back.mark() == '\u2713', "wchar");
    }

    private static void check(boolean right, String what) {
        System.out.println((right ? "ok " : "WRONG ") + what);
        if (!right) wrong++;
    }
}
