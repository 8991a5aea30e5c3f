// A library to be visited, opened and closed.
int plugin_value(void) { return 5; }
