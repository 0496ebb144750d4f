// Counts what a process of another ORB does with locks and the heap, without a change to it: LD_PRELOAD of this library,
// with COUNTS naming a file of a page that holds the counters, so that the laboratory can read them at any moment.
//
// Only calls through the linker's tables are seen, as P1's tools saw them: not those inside of the C library.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// The order is that of `CountedPage::read` in ../../whitebox/contestant.rs.
enum counter { LOCK_OPERATIONS, CONTENDED, HEAP_CALLS, CONDITION_OPERATIONS, COUNTERS };

static _Atomic uint64_t before_the_page[COUNTERS];
static _Atomic(_Atomic uint64_t *) page = before_the_page;

static void count(enum counter which, uint64_t by) {
  atomic_fetch_add_explicit(&atomic_load_explicit(&page, memory_order_relaxed)[which], by, memory_order_relaxed);
}

__attribute__((constructor)) static void take_page(void) {
  const char *path = getenv("COUNTS");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shared != MAP_FAILED) page = shared;
}

// The next definition of a function after ours; of those that have several versions, the one that is linked today.
static void *next(const char *name) {
  void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  return found ? found : dlsym(RTLD_NEXT, name);
}

#define REAL(name)                                       \
  static _Atomic(__typeof__(&name)) real;                \
  if (!real) real = (__typeof__(&name))next(#name)

static int try_without_counting(pthread_mutex_t *mutex) {
  REAL(pthread_mutex_trylock);
  return real(mutex);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  REAL(pthread_mutex_lock);
  count(LOCK_OPERATIONS, 1);
  const int tried = try_without_counting(mutex);
  if (tried != EBUSY) return tried;
  count(CONTENDED, 1);
  return real(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
  count(LOCK_OPERATIONS, 1);
  return try_without_counting(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
  REAL(pthread_mutex_unlock);
  count(LOCK_OPERATIONS, 1);
  return real(mutex);
}

// A wait gives the mutex back and takes it again.
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  REAL(pthread_cond_wait);
  count(CONDITION_OPERATIONS, 1);
  count(LOCK_OPERATIONS, 2);
  return real(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
  REAL(pthread_cond_timedwait);
  count(CONDITION_OPERATIONS, 1);
  count(LOCK_OPERATIONS, 2);
  return real(condition, mutex, until);
}

int pthread_cond_signal(pthread_cond_t *condition) {
  REAL(pthread_cond_signal);
  count(CONDITION_OPERATIONS, 1);
  return real(condition);
}

int pthread_cond_broadcast(pthread_cond_t *condition) {
  REAL(pthread_cond_broadcast);
  count(CONDITION_OPERATIONS, 1);
  return real(condition);
}

int sem_wait(sem_t *semaphore) {
  REAL(sem_wait);
  count(CONDITION_OPERATIONS, 1);
  return real(semaphore);
}

int sem_post(sem_t *semaphore) {
  REAL(sem_post);
  count(CONDITION_OPERATIONS, 1);
  return real(semaphore);
}

// glibc's own names: looking them up would allocate.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t number, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

void *malloc(size_t size) {
  count(HEAP_CALLS, 1);
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  count(HEAP_CALLS, 1);
  return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
  count(HEAP_CALLS, 1);
  return __libc_realloc(memory, size);
}

void free(void *memory) {
  if (memory) count(HEAP_CALLS, 1);
  __libc_free(memory);
}
