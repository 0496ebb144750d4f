// A program of your own for `rtorb lab kernel run --own-program periodic=FILE`: how late a thread of priority 90 wakes.
//
//     cc -O2 -static -o periodic examples/own-program/periodic.c
//
// It is run once for each seed. It prints a time in nanoseconds a line, and nothing before the last one was taken: printing is
// work too. What is printed as `name time` is a series of that name. It calls rtorb_sample once for each time that it prints, in the
// same order, so that the laboratory finds a sample again and names the functions that it was spent in.
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { SAMPLES = 500, WARM_UP = 20, PERIOD_NS = 1000000, SECOND_NS = 1000000000 };

static int64_t late_ns[SAMPLES];

// The seed says when each period begins, so that the samples of two seeds meet kernel and load at different moments.
static uint64_t draw(uint64_t *state) {
  uint64_t mixed = *state += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// Ends a sample. It is not inlined, so that an instruction trace can count its calls.
__attribute__((noinline)) void rtorb_sample(void) { __asm__ volatile(""); }

static int is_printed(int sample) { return sample >= WARM_UP && sample < SAMPLES - 1; }

int main(void) {
  const char *text = getenv("RTORB_SEED");
  uint64_t seed = text ? strtoull(text, NULL, 10) : 0;
  struct sched_param priority = {.sched_priority = 90};
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) perror("no real-time priority");
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) perror("memory is not locked");
  for (int i = 0; i < SAMPLES; i++) {
    struct timespec next, now;
    clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_nsec += PERIOD_NS + draw(&seed) % PERIOD_NS;
    next.tv_sec += next.tv_nsec / SECOND_NS;
    next.tv_nsec %= SECOND_NS;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (is_printed(i)) rtorb_sample();
    late_ns[i] = (int64_t)(now.tv_sec - next.tv_sec) * SECOND_NS + (now.tv_nsec - next.tv_nsec);
  }
  for (int i = 0; i < SAMPLES; i++)
    if (is_printed(i)) printf("wakeup %lld\n", (long long)late_ns[i]);
  return 0;
}
