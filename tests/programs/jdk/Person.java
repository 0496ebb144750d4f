// An Exchange::Person as a stub would read and write it.

import org.omg.CORBA.portable.InputStream;
import org.omg.CORBA.portable.OutputStream;

record Person(String name, String nickname, String[] titles, char initial, char mark, boolean present, double height, long born,
        long id, float weight, short house) {
    Person(String name, String nickname, char initial, char mark) {
        this(name, nickname, new String[] {"Dr"}, initial, mark, true, 1.625, -1988150400L, 7, -0.5f, (short) 65535);
    }

    static Person read(InputStream in) {
        String name = in.read_string();
        String nickname = in.read_wstring();
        String[] titles = texts(in);
        return new Person(name, nickname, titles, in.read_char(), in.read_wchar(), in.read_boolean(), in.read_double(),
            in.read_longlong(), in.read_ulonglong(), in.read_float(), in.read_ushort());
    }

    void write(OutputStream out) {
        out.write_string(name);
        out.write_wstring(nickname);
        texts(out, titles);
        out.write_char(initial);
        out.write_wchar(mark);
        out.write_boolean(present);
        out.write_double(height);
        out.write_longlong(born);
        out.write_ulonglong(id);
        out.write_float(weight);
        out.write_ushort(house);
    }

    static String[] texts(InputStream in) {
        String[] texts = new String[in.read_ulong()];
        for (int at = 0; at < texts.length; at++) texts[at] = in.read_string();
        return texts;
    }

    static void texts(OutputStream out, String[] texts) {
        out.write_ulong(texts.length);
        for (String text : texts) out.write_string(text);
    }
}
