/* What the examples share: the algorithm from the command line, threads, random numbers. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <loam/tm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* `PROGRAM [ALGORITHM]` */
static inline void choose_algorithm(int argc, char** argv) {
  loam_config config;
  loam_config_default(&config);
  if (argc > 1) config.algorithm = argv[1];
  if (loam_configure(&config) != LOAM_OK) {
    fprintf(stderr, "%s: %s\n", argv[0], loam_error());
    exit(2);
  }
}

static inline pthread_t start(void* (*body)(void*), void* argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, argument) != 0) {
    perror("pthread_create");
    exit(1);
  }
  return thread;
}

static inline unsigned random_below(unsigned* seed, unsigned below) {
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % below;
}

#endif
