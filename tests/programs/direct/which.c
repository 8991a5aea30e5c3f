int which(void) { return NUMBER; }
