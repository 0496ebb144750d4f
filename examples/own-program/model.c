// A system of the analysis for `rtorb lab kernel run --own-program model=FILE`: `rtorb model run` in an emulated machine.
//
//     cc -O2 -static -DMODEL='"examples/model/only-edf.toml"' -o model examples/own-program/model.c
//
// The guest has no other files, so the system is a part of the program. For each behaviour it prints how many jobs ended, how many were left
// out, how many missed their deadline, and the longest response.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef DURATION
#define DURATION "2s"
#endif

__asm__(".section .rodata\n.global model\nmodel:\n.incbin \"" MODEL "\"\n.byte 0\n.previous\n");
extern const char model[];

static char results[8 << 20];

// Kernels from 6.12 on keep 50 ms of each second for threads without real-time priority. Others have no such file.
static void switch_off_fair_server(void) {
  mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
  FILE *runtime = fopen("/sys/kernel/debug/sched/fair_server/cpu0/runtime", "w");
  if (runtime == NULL) return;
  if (fputs("0", runtime) < 0 || fclose(runtime) != 0) perror("fair_server");
}

static int write_model(void) {
  mkdir("/tmp", 0777);
  FILE *file = fopen("/tmp/model.toml", "w");
  return file == NULL || fputs(model, file) < 0 || fclose(file) != 0;
}

// Runs the guest's own rtorb, which is its first process, and reads the results that it prints.
static int run(void) {
  int ends[2], status;
  if (pipe(ends) != 0) return 1;
  pid_t child = fork();
  if (child == 0) {
    struct sched_param other = {0};
    sched_setscheduler(0, SCHED_OTHER, &other);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl("/init", "rtorb", "model", "run", "/tmp/model.toml", "--ideal", "--duration", DURATION, "--out", "/tmp/report", "--json",
          (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got; (got = read(ends[0], results + length, sizeof results - 1 - length)) > 0;) length += got;
  return child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) > 1;
}

static void print_behaviours(char *at) {
  static const char *const fields[] = {"count", "skipped", "misses", "worst_ns"};
  static const char behaviour[] = "\"behaviour\": \"";
  while ((at = strstr(at, behaviour)) != NULL) {
    at += sizeof behaviour - 1;
    int name = (int)strcspn(at, "\"");
    const char *next = strstr(at, behaviour);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
      char key[32];
      snprintf(key, sizeof key, "\"%s\": ", fields[i]);
      const char *field = strstr(at, key);
      if (field != NULL && (next == NULL || field < next)) printf("%.*s-%s %ld\n", name, at, fields[i], atol(field + strlen(key)));
    }
  }
}

int main(void) {
  switch_off_fair_server();
  if (write_model() || run()) {
    perror("the model was not run");
    return 1;
  }
  char *judgement = strstr(results, "\"judgement\": {");
  if (judgement == NULL) return 1;
  print_behaviours(judgement);
  return 0;
}
