// Calls every operation of an RtecScheduler::Scheduler through omniORB, and checks every answer.
//
// scheduler_client REF [ORB options]
// REF is a file or a reference of a Scheduler that knows nothing yet and computes rate-monotonically. One line a check;
// status 1 if one is wrong.
#include "rtec_scheduler.hh"

#include "peer.h"

namespace {

const CORBA::ULongLong MS = 10000;  // in units of 100 ns

using namespace RtecScheduler;

template <class Raised, class Call>
void refuses(const char* what, Call call) {
  try {
    call();
    peer::check(false, what);
  } catch (const Raised&) {
    peer::check(true, what);
  }
}

void set(Scheduler_ptr scheduler, handle_t handle, CORBA::Long period_ms, CORBA::ULongLong worst_ms) {
  scheduler->set(handle, HIGH_CRITICALITY, worst_ms * MS, worst_ms * MS, 0, period_ms * CORBA::Long(MS), LOW_IMPORTANCE, 0, 1,
                 OPERATION);
}

void known(Scheduler_ptr scheduler, handle_t fast, handle_t slow) {
  peer::check_equal<handle_t>("lookup", scheduler->lookup("fast"), fast);
  refuses<DUPLICATE_NAME>("create of a name twice", [&] { scheduler->create("fast"); });
  refuses<UNKNOWN_TASK>("lookup of nobody", [&] { scheduler->lookup("nobody"); });
  refuses<UNKNOWN_TASK>("get of nobody", [&] { RT_Info_var info = scheduler->get(77); });
  refuses<NOT_SCHEDULED>("last_scheduled_priority before a schedule", [&] { scheduler->last_scheduled_priority(); });
  set(scheduler, slow, 100, 10);
  scheduler->reset(fast, VERY_HIGH_CRITICALITY, 2 * MS, MS, MS, CORBA::Long(25 * MS), VERY_HIGH_IMPORTANCE, 20 * MS, 0,
                   OPERATION);
  RT_Info_var info = scheduler->get(fast);
  peer::check(std::strcmp(info->entry_point, "fast") == 0 && info->handle == fast, "get: name and handle");
  peer::check(info->worst_case_execution_time == 2 * MS && info->period == CORBA::Long(25 * MS), "get: times");
  peer::check(info->criticality == VERY_HIGH_CRITICALITY && info->quantum == 20 * MS, "get: criticality and quantum");
}

void dependencies(Scheduler_ptr scheduler, handle_t slow, handle_t passive) {
  scheduler->add_dependency(slow, passive, 2, RtecBase::TWO_WAY_CALL);
  scheduler->add_dependency(slow, passive, 9, RtecBase::ONE_WAY_CALL);
  scheduler->remove_dependency(slow, passive, 9, RtecBase::ONE_WAY_CALL);
  scheduler->set_dependency_enable_state(slow, passive, 2, RtecBase::TWO_WAY_CALL, RtecBase::DEPENDENCY_NON_VOLATILE);
  Dependency_Set_var all;
  scheduler->get_dependency_set(all.out());
  bool right = all->length() == 1 && all[0].number_of_calls == 2 && all[0].rt_info_depended_on == passive &&
               all[0].enabled == RtecBase::DEPENDENCY_NON_VOLATILE;
  peer::check(right, "get_dependency_set");
  scheduler->set_dependency_enable_state_seq(all);
}

void scheduled(Scheduler_ptr scheduler, handle_t fast) {
  RT_Info_Set_var infos;
  Dependency_Set_var all;
  Config_Info_Set_var configs;
  Scheduling_Anomaly_Set_var anomalies;
  scheduler->compute_scheduling(1, 30, infos.out(), all.out(), configs.out(), anomalies.out());
  peer::check_equal<CORBA::ULong>("compute_scheduling: infos", infos->length(), 3);
  peer::check_equal<CORBA::ULong>("compute_scheduling: dependencies", all->length(), 1);
  peer::check_equal<CORBA::ULong>("compute_scheduling: levels", configs->length(), 2);
  peer::check_equal<CORBA::ULong>("compute_scheduling: anomalies", anomalies->length(), 0);
  peer::check(configs[0].thread_priority == 30 && configs[0].dispatching_type == STATIC_DISPATCHING &&
                  configs[0].timer_periods.length() == 1 && configs[0].timer_periods[0] == CORBA::Long(25 * MS),
              "compute_scheduling: the first level");
  CORBA::Long os, sub, level;
  scheduler->priority(fast, os, sub, level);
  peer::check(os == 30 && sub == 0 && level == 0, "priority");
  scheduler->entry_point_priority("passive", os, sub, level);
  peer::check(os == 29 && level == 1, "entry_point_priority");
  Dispatching_Type_t dispatching;
  scheduler->dispatch_configuration(1, os, dispatching);
  peer::check(os == 29 && dispatching == STATIC_DISPATCHING, "dispatch_configuration");
  refuses<UNKNOWN_PRIORITY_LEVEL>("dispatch_configuration of no level",
                                  [&] { scheduler->dispatch_configuration(9, os, dispatching); });
  peer::check_equal<CORBA::Long>("last_scheduled_priority", scheduler->last_scheduled_priority(), 1);
  scheduler->get_config_info_set(configs.out());
  peer::check_equal<CORBA::ULong>("get_config_info_set", configs->length(), 2);
  scheduler->get_config_infos(configs.out());
  peer::check_equal<CORBA::ULong>("get_config_infos", configs->length(), 2);
  refuses<INSUFFICIENT_THREAD_PRIORITY_LEVELS>("recompute_scheduling with one priority",
                                               [&] { scheduler->recompute_scheduling(7, 7, anomalies.out()); });
}

void changed(Scheduler_ptr scheduler, handle_t fast, handle_t slow) {
  RT_Info_Set_var infos;
  scheduler->get_rt_info_set(infos.out());
  infos[0].worst_case_execution_time = 60 * MS;
  scheduler->set_seq(infos);
  scheduler->reset_seq(infos);
  Scheduling_Anomaly_Set_var anomalies;
  scheduler->recompute_scheduling(1, 30, anomalies.out());
  bool told = anomalies->length() > 0 && anomalies[0].severity == ANOMALY_ERROR;
  peer::check(told && std::strlen(anomalies[0].description) > 0, "recompute_scheduling tells overload");
  scheduler->set_rt_info_enable_state(slow, RT_INFO_NON_VOLATILE);
  RT_Info_Enable_State_Pair_Set pairs;
  pairs.length(1);
  pairs[0].handle = fast;
  pairs[0].enabled = RT_INFO_DISABLED;
  scheduler->set_rt_info_enable_state_seq(pairs);
  scheduler->recompute_scheduling(1, 30, anomalies.out());
  CORBA::Long os, sub, level;
  refuses<NOT_SCHEDULED>("priority of what is disabled", [&] { scheduler->priority(fast, os, sub, level); });
  scheduler->replace_seq(RT_Info_Set());
  RT_Info_var info = scheduler->get(slow);
  peer::check(info->period == CORBA::Long(100 * MS), "replace_seq leaves what is not volatile");
  info = scheduler->get(fast);
  peer::check(info->period == 0, "replace_seq resets the others");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    if (argc < 2) {
      std::cerr << "usage: scheduler_client REF [ORB options]" << std::endl;
      return 2;
    }
    CORBA::Object_var object = peer::reference(orb, argv[1]);
    Scheduler_var scheduler = Scheduler::_narrow(object);
    peer::check(!CORBA::is_nil(scheduler), "the object is a Scheduler");
    handle_t fast = scheduler->create("fast");
    handle_t slow = scheduler->create("slow");
    handle_t passive = scheduler->create("passive");
    known(scheduler, fast, slow);
    set(scheduler, passive, 0, 1);
    dependencies(scheduler, slow, passive);
    scheduled(scheduler, fast);
    changed(scheduler, fast, slow);
    orb->destroy();
  } catch (const CORBA::Exception& e) {
    return peer::report(e);
  }
  return peer::wrong == 0 ? 0 : 1;
}
