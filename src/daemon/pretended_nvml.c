// SPDX-License-Identifier: Apache-2.0
// For devices_test: the functions of NVML that are called, with two GPUs that do not exist.
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
int nvmlDeviceGetName(void *device, char *name, unsigned length) {
  strncpy(name, "Pretended GPU", length);
  return device == (void *)&nvmlInit_v2 ? 0 : 2;
}
