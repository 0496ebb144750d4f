// Calls an Exchange::Desk with the end times of CORBA Messaging, behind a call that keeps its server busy, and checks which calls are
// served: those that end in time.
//
// java DeadlineClient REF: REF is a file or a reference. The server has one thread for a connection. One line a check; status 1 if one
// is wrong.

import Exchange.Desk;
import Exchange.DeskHelper;
import java.nio.file.Files;
import java.nio.file.Path;
import org.omg.CORBA.Any;
import org.omg.CORBA.CompletionStatus;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Policy;
import org.omg.CORBA.Request;
import org.omg.CORBA.SetOverrideType;
import org.omg.CORBA.TIMEOUT;
import org.omg.Messaging.RELATIVE_REQ_TIMEOUT_POLICY_TYPE;
import org.omg.Messaging.RELATIVE_RT_TIMEOUT_POLICY_TYPE;
import org.omg.Messaging.REPLY_END_TIME_POLICY_TYPE;
import org.omg.Messaging.REQUEST_END_TIME_POLICY_TYPE;
import org.omg.TimeBase.UtcT;
import org.omg.TimeBase.UtcTHelper;

public final class DeadlineClient {
    // rtorb's minor code for a request that expired before a servant was called.
    private static final int EXPIRED = 0x72746012;
    private static final int BUSY_MS = 600;
    private static final int EARLY_MS = 200;
    private static final int LATE_MS = 60_000;
    // 1 January 1970 in units of 100 ns since 15 October 1582.
    private static final long UNIX_EPOCH = 0x01B21DD213814000L;

    private static ORB orb;
    private static Desk desk;
    private static int wrong = 0;

    public static void main(String[] arguments) throws Exception {
        orb = ORB.init(arguments, System.getProperties());
        Path file = Path.of(arguments[0]);
        String reference = Files.isRegularFile(file) ? Files.readString(file).trim() : arguments[0];
        desk = DeskHelper.narrow(orb.string_to_object(reference));
        desk.level(0);
        refusedByServer("RequestEndTime", REQUEST_END_TIME_POLICY_TYPE.value, true);
        refusedByServer("RelativeRequestTimeout", RELATIVE_REQ_TIMEOUT_POLICY_TYPE.value, false);
        givenUp("ReplyEndTime", REPLY_END_TIME_POLICY_TYPE.value, true);
        givenUp("RelativeRoundtripTimeout", RELATIVE_RT_TIMEOUT_POLICY_TYPE.value, false);
        served("RequestEndTime", REQUEST_END_TIME_POLICY_TYPE.value, true);
        served("RelativeRequestTimeout", RELATIVE_REQ_TIMEOUT_POLICY_TYPE.value, false);
        served("ReplyEndTime", REPLY_END_TIME_POLICY_TYPE.value, true);
        served("RelativeRoundtripTimeout", RELATIVE_RT_TIMEOUT_POLICY_TYPE.value, false);
        orb.shutdown(true);
        System.exit(wrong == 0 ? 0 : 1);
    }

    // JacORB itself waits on, so the exception is the server's.
    private static void refusedByServer(String name, int policy, boolean isEndTime) throws Exception {
        keepBusy();
        try {
            ending(policy, isEndTime, EARLY_MS).level(policy);
            check(false, name + ": refused");
        } catch (TIMEOUT e) {
            check(e.minor == EXPIRED && e.completed == CompletionStatus.COMPLETED_NO, name + ": refused");
        }
        check(desk.level() == 0, name + ": no servant was called");
    }

    // JacORB gives up by itself.
    private static void givenUp(String name, int policy, boolean isEndTime) throws Exception {
        keepBusy();
        try {
            ending(policy, isEndTime, EARLY_MS).level(policy);
            check(false, name + ": given up");
        } catch (TIMEOUT e) {
            check(e.minor != EXPIRED, name + ": given up");
        }
        check(desk.level() == 0, name + ": no servant was called");
    }

    private static void served(String name, int policy, boolean isEndTime) throws Exception {
        keepBusy();
        ending(policy, isEndTime, LATE_MS).level(policy);
        check(desk.level() == policy, name + ": served");
    }

    // The server reads further requests of the connection after this one.
    private static void keepBusy() {
        Request sleep = desk._request("sleep");
        sleep.add_in_arg().insert_ulong(BUSY_MS);
        sleep.send_oneway();
    }

    // The desk, for calls that end after some time.
    private static Desk ending(int policy, boolean isEndTime, int milliseconds) throws Exception {
        Any value = orb.create_any();
        if (isEndTime) {
            long end = (System.currentTimeMillis() + milliseconds) * 10_000L + UNIX_EPOCH;
            UtcTHelper.insert(value, new UtcT(end, 0, (short) 0, (short) 0));
        } else {
            value.insert_ulonglong(milliseconds * 10_000L);
        }
        Policy[] policies = {orb.create_policy(policy, value)};
        return DeskHelper.unchecked_narrow(desk._set_policy_override(policies, SetOverrideType.SET_OVERRIDE));
    }

    private static void check(boolean right, String what) {
        System.out.println((right ? "ok " : "WRONG ") + what);
        if (!right) wrong++;
    }
}
