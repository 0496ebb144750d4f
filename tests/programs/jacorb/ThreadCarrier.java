// Gives the nested calls of a JacORB server the service context of a distributable thread that their request has.
//
// -Dorg.omg.PortableInterceptor.ORBInitializerClass.ThreadCarrier=ThreadCarrier

import org.omg.CORBA.BAD_PARAM;
import org.omg.CORBA.LocalObject;
import org.omg.IOP.ServiceContext;
import org.omg.PortableInterceptor.ClientRequestInfo;
import org.omg.PortableInterceptor.ClientRequestInterceptor;
import org.omg.PortableInterceptor.ORBInitInfo;
import org.omg.PortableInterceptor.ORBInitInfoPackage.DuplicateName;
import org.omg.PortableInterceptor.ORBInitializer;
import org.omg.PortableInterceptor.ServerRequestInfo;
import org.omg.PortableInterceptor.ServerRequestInterceptor;

public final class ThreadCarrier extends LocalObject implements ORBInitializer {
    // The context is rtorb's.
    private static final int DISTRIBUTABLE_THREAD = 0x72746210;

    private static final ThreadLocal<ServiceContext> carried = new ThreadLocal<>();

    public void pre_init(ORBInitInfo info) {
        try {
            info.add_server_request_interceptor(new Server());
            info.add_client_request_interceptor(new Client());
        } catch (DuplicateName e) {
            throw new IllegalStateException(e);
        }
    }

    public void post_init(ORBInitInfo info) {}

    private static final class Server extends LocalObject implements ServerRequestInterceptor {
        public String name() {
            return "ThreadCarrier";
        }

        public void destroy() {}

        public void receive_request_service_contexts(ServerRequestInfo info) {}

        // It runs on the thread of the servant.
        public void receive_request(ServerRequestInfo info) {
            try {
                carried.set(info.get_request_service_context(DISTRIBUTABLE_THREAD));
            } catch (BAD_PARAM none) {
                carried.remove();
            }
        }

        public void send_reply(ServerRequestInfo info) {}

        public void send_exception(ServerRequestInfo info) {}

        public void send_other(ServerRequestInfo info) {}
    }

    private static final class Client extends LocalObject implements ClientRequestInterceptor {
        public String name() {
            return "ThreadCarrier";
        }

        public void destroy() {}

        public void send_request(ClientRequestInfo info) {
            ServiceContext context = carried.get();
            if (context != null) info.add_request_service_context(context, true);
        }

        public void send_poll(ClientRequestInfo info) {}

        public void receive_reply(ClientRequestInfo info) {}

        public void receive_exception(ClientRequestInfo info) {}

        public void receive_other(ClientRequestInfo info) {}
    }
}
