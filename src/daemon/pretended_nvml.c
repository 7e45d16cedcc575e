// SPDX-License-Identifier: Apache-2.0
// For devices_test: the functions of NVML that are called, with two GPUs that do not exist.
#include <stdlib.h>
#include <string.h>

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  *device = (void *)&nvmlInit_v2;
  return index < 2 ? 0 : 2;
}
// Of both: PRETENDED_ERRORS; "lost": the driver has lost them.
int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *errors) {
  const char *text = getenv("PRETENDED_ERRORS");
  if (text != 0 && strcmp(text, "lost") == 0) {
    return 15;
  }
  *errors = text == 0 ? 0 : strtoull(text, 0, 10);
  return device != 0 && type == 1 && counter == 0 ? 0 : 2;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
  strncpy(name, "Pretended GPU", length);
  return device == (void *)&nvmlInit_v2 ? 0 : 2;
}
