// Sends the values of a Matrix::Samples to each Matrix::Echo of a file, and asks a Matrix::Judge whether they come back.
//
// java MatrixClient FILE SAMPLES JUDGE
// A line of FILE is a word and a reference. For each of these and each type, it prints the word, the name of the operation, and "ok", or the
// directions that are wrong, or the call that raised an exception and its name. The three are separated by tabulators. The operations
// are those of the interface that the IDL compiler made, so there is no line for a type here.

import Matrix.Echo;
import Matrix.EchoHelper;
import Matrix.EchoOperations;
import Matrix.Judge;
import Matrix.JudgeHelper;
import Matrix.JudgeOperations;
import Matrix.Pixel;
import Matrix.Samples;
import Matrix.SamplesHelper;
import Matrix.SamplesOperations;
import Matrix.Trouble;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import org.omg.CORBA.ORB;

public final class MatrixClient {
    // The number of values that are sent. The server repeats those of a type with fewer.
    private static final int VALUES = 4;

    private static Samples samples;
    private static Judge judge;
    private static String call;

    public static void main(String[] arguments) throws Exception {
        ORB orb = ORB.init(arguments, System.getProperties());
        samples = SamplesHelper.unchecked_narrow(orb.string_to_object(arguments[1]));
        judge = JudgeHelper.unchecked_narrow(orb.string_to_object(arguments[2]));
        StringBuilder lines = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split(" ");
            // A connection agrees on code sets once, and all versions of a server have one address.
            ORB own = ORB.init(new String[0], System.getProperties());
            Echo echo = EchoHelper.unchecked_narrow(own.string_to_object(words[1]));
            for (Method operation : EchoOperations.class.getMethods()) {
                lines.append(words[0]).append('\t').append(operation.getName()).append('\t').append(said(echo, operation)).append('\n');
            }
            own.shutdown(true);
        }
        System.out.print(lines);
        System.out.flush();
        orb.shutdown(true);
        System.exit(0);
    }

    private static String said(Echo echo, Method operation) throws Exception {
        boolean[] isWrong = new boolean[3];
        try {
            for (int index = 0; index < VALUES; index++) {
                if (operation.getName().equals("a_user_exception")) userException(echo, index, isWrong);
                else one(echo, operation, index, isWrong);
            }
        } catch (InvocationTargetException e) {
            return call + " " + e.getCause().getClass().getSimpleName();
        } catch (RuntimeException e) {
            return call + " " + e.getClass().getSimpleName();
        }
        String wrong = (isWrong[0] ? " result" : "") + (isWrong[1] ? " inout" : "") + (isWrong[2] ? " out" : "");
        return wrong.isEmpty() ? "ok" : "differs:" + wrong;
    }

    private static void one(Echo echo, Method operation, int index, boolean[] isWrong) throws Exception {
        Class<?>[] types = operation.getParameterTypes();
        Object both = types[1].getDeclaredConstructor().newInstance();
        Object made = types[2].getDeclaredConstructor().newInstance();
        call = "samples";
        Method give = SamplesOperations.class.getMethod(operation.getName(), int.class);
        Object given = give.invoke(samples, index);
        types[1].getField("value").set(both, give.invoke(samples, index + 1));
        call = "echo";
        Object result = operation.invoke(echo, given, both, made);
        call = "judge";
        Method judged = JudgeOperations.class.getMethod(operation.getName(), int.class, types[0]);
        isWrong[0] |= !(Boolean) judged.invoke(judge, index, result);
        isWrong[1] |= !(Boolean) judged.invoke(judge, index, types[1].getField("value").get(both));
        isWrong[2] |= !(Boolean) judged.invoke(judge, index + 1, types[2].getField("value").get(made));
    }

    private static void userException(Echo echo, int index, boolean[] isWrong) {
        call = "samples";
        String reason = samples.a_string(index);
        int code = samples.a_long(index);
        Pixel at = samples.a_fixed_struct(index);
        call = "echo";
        try {
            echo.a_user_exception(reason, code, at);
            isWrong[0] = true;
        } catch (Trouble e) {
            call = "judge";
            isWrong[0] |= !judge.a_string(index, e.reason) || e.code != code || !judge.a_fixed_struct(index, e.at);
        }
    }
}
