// A plug-in that reads a variable of another library.
extern int shared_value;
int read_value(void) { return shared_value; }
