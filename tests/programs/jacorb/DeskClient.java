// Calls every operation of an Exchange::Desk through JacORB, which writes big-endian, and checks every answer.
//
// java DeskClient REF: REF is a file or a reference. One line a check; status 1 if one is wrong. With -Dbidirectional=true, it is called
// back over its own connection first.

import Exchange.Desk;
import Exchange.DeskHelper;
import Exchange.Empty;
import Exchange.Party;
import Exchange.PartyHelper;
import Exchange.Person;
import Exchange.Refused;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.IntHolder;
import org.omg.CORBA.NO_PERMISSION;
import org.omg.CORBA.ORB;
import org.omg.CORBA.StringHolder;

public final class DeskClient {
    private static int wrong = 0;

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, System.getProperties());
        Path file = Path.of(arguments[0]);
        String reference = Files.isRegularFile(file) ? Files.readString(file).trim() : arguments[0];
        Desk desk = DeskHelper.narrow(orb.string_to_object(reference));
        if (Boolean.getBoolean("bidirectional")) calledBack(orb, desk);
        text(desk);
        person(desk);
        directions(desk);
        exceptions(desk);
        references(desk);
        orb.shutdown(true);
        System.exit(wrong == 0 ? 0 : 1);
    }

    /** The server calls back over the connection of the call. */
    private static void calledBack(ORB orb, Desk desk) throws Exception {
        DeskServer own = new DeskServer();
        own.level(41);
        Party party = PartyHelper.narrow(Adapters.of(orb).servant_to_reference(own));
        check(desk.level_of(party) == 42, "level_of, over the connection of the client");
    }

    private static void text(Desk desk) {
        for (String text : new String[] {"", "plain", "caf\u00e9 \u00e5ngstr\u00f6m \u00ff", "a longer text"}) {
            check(desk.echo_string(text).equals(text), "echo_string");
        }
        for (String text : new String[] {"", "plain", "\u03b1\u03b2\u03b3", "\u65e5\u672c", "\ud83e\udd80"}) {
            check(desk.echo_wstring(text).equals(text), "echo_wstring");
        }
        String[] lines = {"one", "", "\u00df\u00e6"};
        check(Arrays.equals(desk.echo_texts(lines), lines), "echo_texts");
    }

    private static void person(Desk desk) {
        Person who = new Person("Grace", "\u0394", new String[] {"Rear Admiral", "Dr"}, 'G', '\u2713', true, 1.625, -1988150400L,
            0xfedcba9876543210L, -0.5f, (short) 65535);
        Person back = desk.echo_person(who);
        check(back.name.equals(who.name) && back.nickname.equals(who.nickname) && Arrays.equals(back.titles, who.titles)
            && back.initial == 'G' && back.mark == '\u2713' && back.present && back.height == 1.625 && back.born == who.born
            && back.id == who.id && back.weight == -0.5f && back.house == who.house, "echo_person");
    }

    private static void directions(Desk desk) {
        IntHolder both = new IntHolder(6);
        StringHolder text = new StringHolder();
        check(desk.mixed(7, both, text) == 42 && both.value == 13 && text.value.equals("given=7"), "mixed");
        desk.level(-5);
        check(desk.level() == -5, "level");
        check(!desk.name().isEmpty(), "name is " + desk.name());
        int before = desk.noted();
        for (int n = 0; n < 10; n++) desk.note(n);
        int after = before;
        for (int tries = 0; tries < 500 && after != before + 10; tries++) after = desk.noted();
        check(after == before + 10, "ten notes");
    }

    private static void exceptions(Desk desk) throws Exception {
        desk.refuse(0, "nothing");
        try {
            desk.refuse(3, "no \u00e9 here");
            check(false, "refuse raises Refused");
        } catch (Refused e) {
            check(e.code == 3 && e.reason.equals("no \u00e9 here"), "refuse raises Refused");
        }
        try {
            desk.refuse(-1, "");
            check(false, "refuse raises Empty");
        } catch (Empty e) {
            check(true, "refuse raises Empty");
        }
        try {
            desk.fail(0x12345);
            check(false, "fail raises NO_PERMISSION");
        } catch (NO_PERMISSION e) {
            check(e.minor == 0x12345 && e.completed == CompletionStatus.COMPLETED_MAYBE, "fail raises NO_PERMISSION");
        }
    }

    private static void references(Desk desk) {
        check(desk.echo_object(desk)._is_equivalent(desk), "echo_object");
        check(desk.echo_object(null) == null, "echo_object of nil");
        check(desk.echo_desk(desk).level() == -5, "level through echo_desk");
        check(desk.echo_desk(null) == null, "echo_desk of nil");
        check(desk.level_of(desk) == -4, "level_of itself, a nested call");
        check(desk._is_a("IDL:Exchange/Party:1.0"), "_is_a its base");
        check(!desk._is_a("IDL:Exchange/Stranger:1.0"), "_is_a not what it is not");
        check(!desk._non_existent(), "_non_existent is false");
    }

    private static void check(boolean right, String what) {
        System.out.println((right ? "ok " : "WRONG ") + what);
        if (!right) wrong++;
    }
}
